/** A shutdown hook that runs when the program is told to terminate. */
public class Main {
    public static void main(String[] args) throws Exception {
        Runtime.getRuntime().addShutdownHook(new Thread(() -> {
            System.out.println("hook: saving");
            System.out.flush();
        }));
        System.out.println("before");
        new ProcessBuilder("/bin/sh", "-c", "kill -TERM " + ProcessHandle.current().pid()).start().waitFor();
        Thread.sleep(60_000);
        System.out.println("never printed");
    }
}
