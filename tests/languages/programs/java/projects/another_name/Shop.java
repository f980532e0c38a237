public class Shop {
    public static void main(String[] args) {
        System.out.println("total " + (3 + 4) + " " + Shop.class.getSimpleName());
    }
}
