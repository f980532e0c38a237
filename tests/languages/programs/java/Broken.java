public class Broken {
    public static void main(String[] args) {
        String text = 42;
        System.out.println(text);
    }
}
