public class Environment {
    public static void main(String[] args) {
        System.out.println(System.getenv("GREETING"));
    }
}
