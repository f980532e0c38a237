package shop.till;

public record Till(int... prices) {
    public int total() {
        int total = 0;
        for (int price : prices) {
            total += price;
        }
        return total;
    }
}
