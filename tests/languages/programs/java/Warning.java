public class Warning {
    public static void main(String[] args) {
        Integer forgotten_value = new Integer(42);
        System.out.println("hello, world");
    }
}
