import java.io.IOException;
import java.nio.charset.StandardCharsets;
import java.util.List;
import java.util.concurrent.TimeUnit;

/** Children: a filter, exit codes, a pipeline, one that is killed, one that is not there. */
public class Main {
    private static String read(Process process) throws IOException {
        return new String(process.getInputStream().readAllBytes(), StandardCharsets.UTF_8).strip();
    }

    public static void main(String[] args) throws Exception {
        var filter = new ProcessBuilder("tr", "a-z", "A-Z").start();
        try (var input = filter.outputWriter()) {
            input.write("shout");
        }
        System.out.println(read(filter) + " " + filter.waitFor());

        var failed = new ProcessBuilder("/bin/sh", "-c", "echo out; echo bye >&2; exit 7").redirectErrorStream(true).start();
        System.out.println(read(failed).lines().toList() + " " + failed.waitFor());

        var pipeline = ProcessBuilder.startPipeline(List.of(new ProcessBuilder("seq", "1", "3000"), new ProcessBuilder("wc", "-l")));
        System.out.println(read(pipeline.get(1)));

        var slow = new ProcessBuilder("sleep", "60").start();
        System.out.println(slow.waitFor(50, TimeUnit.MILLISECONDS) + " " + slow.isAlive());
        slow.destroyForcibly();
        System.out.println(slow.waitFor());

        try {
            new ProcessBuilder("/no/such/program").start();
        } catch (IOException absent) {
            System.out.println(absent.getMessage().contains("No such file or directory"));
        }
        var told = new ProcessBuilder("/bin/sh", "-c", "echo $GREETING from $PWD").directory(new java.io.File("/usr"));
        told.environment().put("GREETING", "hello");
        var process = told.start();
        System.out.println(read(process) + " " + process.onExit().get().exitValue());
        System.out.println(ProcessHandle.current().children().count());
    }
}
