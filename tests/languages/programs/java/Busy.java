public class Busy {
    public static void main(String[] args) {
        for (long turns = 0; ; turns++) {
            if (turns < 0) {
                turns = 0;
            }
        }
    }
}
