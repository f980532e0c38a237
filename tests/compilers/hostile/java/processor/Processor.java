import java.io.IOException;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.Set;
import javax.annotation.processing.AbstractProcessor;
import javax.annotation.processing.RoundEnvironment;
import javax.annotation.processing.SupportedAnnotationTypes;
import javax.lang.model.element.TypeElement;
import javax.tools.Diagnostic;

/**
 * An annotation processor: a class that the compiler runs inside itself if a service file names it on
 * its class path. It reads a file of the host and has the compiler tell it. CANARY is replaced by the
 * path.
 */
@SupportedAnnotationTypes("*")
public class Processor extends AbstractProcessor {
    @Override
    public boolean process(Set<? extends TypeElement> annotations, RoundEnvironment round) {
        String found;
        try {
            found = Files.readString(Path.of("CANARY"));
        } catch (IOException error) {
            found = error.toString();
        }
        processingEnv.getMessager().printMessage(Diagnostic.Kind.WARNING, "the processor ran: " + found);
        return false;
    }
}
