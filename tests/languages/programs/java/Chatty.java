public class Chatty {
    public static void main(String[] args) {
        for (;;) {
            System.out.println("again and again");
        }
    }
}
