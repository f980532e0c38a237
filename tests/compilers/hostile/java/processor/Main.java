/** Brings an annotation processor, as source and with the service file that makes compilers load it. */
@Deprecated
public class Main {
    public static void main(String[] arguments) {
        System.out.println("compiled");
    }
}
