import java.math.*;
import java.text.DecimalFormat;
import java.text.DecimalFormatSymbols;
import java.util.*;
import java.util.stream.*;

/** Floating point as IEEE 754 has it, and exact numbers beside it. */
public class Main {
    public static void main(String[] args) {
        System.out.println((0.1 + 0.2) + " " + 1e16 + " " + 0.001 + " " + 100.0f + " " + Double.MIN_VALUE + " " + Double.MAX_VALUE);
        System.out.println(String.format(Locale.ROOT, "%.0f %.0f %.2f %8.3f|%-8.2e|%,d %x", 2.5, 3.5, 0.125, Math.PI, 12345.678, 1234567, 255));
        double nan = Double.NaN, infinity = Double.POSITIVE_INFINITY;
        System.out.println((nan == nan) + " " + Double.valueOf(nan).equals(nan) + " " + (infinity - infinity) + " " + Math.max(1, nan) + " " + (0.0 == -0.0) + " " + Double.compare(0.0, -0.0));
        System.out.println(Math.round(-2.5) + " " + Math.rint(2.5) + " " + (int) -1.9 + " " + (-7 % 3) + " " + Math.floorMod(-7, 3) + " " + (int) nan + " " + (int) 1e20 + " " + (byte) 300);
        double sum = 0;
        float single = 0;
        for (int n = 1; n <= 1_000_000; n++) {
            sum += 1.0 / n;
            single += 1f / n;
        }
        System.out.println(sum + " " + single);
        System.out.println(DoubleStream.generate(() -> 0.1).limit(10).sum() + " " + Stream.generate(() -> 0.1).limit(10).reduce(0.0, Double::sum));
        System.out.println(Double.toHexString(0.1) + " " + Long.toHexString(Double.doubleToLongBits(1.5)) + " " + (double) 0.1f + " " + Math.fma(2, 3, 4.0));
        System.out.println(new BigDecimal("2.675").setScale(2, RoundingMode.HALF_EVEN) + " " + new BigDecimal(0.1).toString().length() + " " + BigDecimal.ONE.divide(new BigDecimal(3), MathContext.DECIMAL32));
        System.out.println(BigInteger.TWO.pow(100) + " " + IntStream.rangeClosed(1, 30).mapToObj(BigInteger::valueOf).reduce(BigInteger.ONE, BigInteger::multiply));
        System.out.println((Integer.MAX_VALUE + 1) + " " + (1 << 33) + " " + (-1 >>> 28) + " " + (-1 >> 28) + " " + Integer.toUnsignedString(-1) + " " + (char) ('a' + 1) + " " + ('a' + 1));
        System.out.println(new DecimalFormat("#,##0.00", DecimalFormatSymbols.getInstance(Locale.GERMANY)).format(1234567.891) + " " + Double.parseDouble("0x1.8p1"));
        try {
            Math.addExact(Integer.MAX_VALUE, 1);
        } catch (ArithmeticException overflow) {
            System.out.println(overflow.getMessage());
        }
    }
}
