/** Has itself killed, which no hook hears of. */
public class Main {
    public static void main(String[] args) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> System.out.println("never printed")));
        System.out.println("before");
        new ProcessBuilder("/bin/sh", "-c", "kill -KILL " + ProcessHandle.current().pid()).start().waitFor();
        Thread.sleep(60_000);
    }
}
