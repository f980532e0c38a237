import java.util.Scanner;

public class Stdin {
    public static void main(String[] args) {
        long sum = 0;
        for (var numbers = new Scanner(System.in); numbers.hasNextLong(); ) {
            sum += numbers.nextLong();
        }
        System.out.println(sum);
    }
}
