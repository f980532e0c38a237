public class ExitThree {
    public static void main(String[] args) {
        System.out.println("before");
        System.exit(3);
    }
}
