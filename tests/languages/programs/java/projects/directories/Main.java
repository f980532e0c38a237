import shop.Prices;

public class Main {
    public static void main(String[] args) {
        System.out.println("total " + Prices.total(3, 4));
    }
}
