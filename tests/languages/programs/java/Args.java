public class Args {
    public static void main(String[] args) {
        System.out.println(String.join("|", args));
    }
}
