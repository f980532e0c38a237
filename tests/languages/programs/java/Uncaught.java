public class Uncaught {
    public static void main(String[] args) {
        System.out.println("before");
        throw new IllegalStateException("out of stock");
    }
}
