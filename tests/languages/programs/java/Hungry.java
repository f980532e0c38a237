import java.util.ArrayList;

public class Hungry {
    public static void main(String[] args) {
        var kept = new ArrayList<byte[]>();
        for (;;) {
            byte[] piece = new byte[1 << 20];
            for (int at = 0; at < piece.length; at += 4096) {
                piece[at] = 1;
            }
            kept.add(piece);
        }
    }
}
