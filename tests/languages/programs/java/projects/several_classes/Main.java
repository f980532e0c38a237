interface Priced {
    int price();
}

record Apple(int price) implements Priced {}

class Till {
    static int total(Priced... things) {
        int total = 0;
        for (var thing : things) {
            total += thing.price();
        }
        return total;
    }
}

class Main {
    public static void main(String[] args) {
        System.out.println("total " + Till.total(new Apple(3), new Apple(4), () -> 0));
    }
}
