package shop.app;

import shop.till.Till;

public class Main {
    public static void main(String[] args) {
        System.out.println("total " + new Till(3, 4).total() + " " + Main.class.getName());
    }
}
