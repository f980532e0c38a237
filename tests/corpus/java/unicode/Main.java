import java.io.*;
import java.nio.charset.*;
import java.nio.file.*;
import java.text.*;
import java.util.*;
import java.util.regex.Pattern;

/** Code units and code points, normal forms, case, collation, bad bytes, the name of a file. */
public class Main {
    public static void main(String[] args) throws IOException {
        var in = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
        for (String line; (line = in.readLine()) != null; ) {
            int points = line.codePointCount(0, line.length());
            int bytes = line.getBytes(StandardCharsets.UTF_8).length;
            System.out.println(line.length() + " " + points + " " + bytes + " " + new StringBuilder(line).reverse());
        }
        var decomposed = Normalizer.normalize("é", Normalizer.Form.NFD);
        System.out.println(decomposed.length() + " " + decomposed.equals("é") + " " + Normalizer.normalize("ﬁ①", Normalizer.Form.NFKC));
        System.out.println("straße".toUpperCase(Locale.ROOT) + " " + "ΑΣ".toLowerCase(Locale.ROOT) + " " + "I".toLowerCase(Locale.forLanguageTag("tr")));
        System.out.println(Character.getName('Ω') + " " + Character.UnicodeScript.of('ж') + " " + Character.toChars(0x1f680).length);
        var cyrillic = Pattern.compile("\\p{IsCyrillic}+").matcher("Ωmega жук 中文");
        System.out.println(cyrillic.find() + " " + cyrillic.group());
        var words = new ArrayList<>(List.of("zoo", "äpfel", "apfel"));
        Collections.sort(words);
        System.out.print(words + " ");
        words.sort(Collator.getInstance(Locale.GERMAN));
        System.out.println(words);
        var größe = new String(new byte[] {'a', (byte) 0xff}, StandardCharsets.UTF_8);
        System.out.println(größe + " " + "€".codePointAt(0) + " " + HexFormat.of().formatHex("€".getBytes(StandardCharsets.UTF_16BE)));
        try {
            StandardCharsets.UTF_8.newDecoder().decode(java.nio.ByteBuffer.wrap(new byte[] {(byte) 0xff}));
        } catch (MalformedInputException bad) {
            System.out.println(bad.getMessage());
        }
        Files.writeString(Path.of("grüße-世界.txt"), "Привет, мир\n");
        try (var names = Files.newDirectoryStream(Path.of("."), "*.txt")) {
            names.forEach(name -> System.out.println(name.getFileName()));
        }
    }
}
