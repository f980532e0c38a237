/* Floating point as IEEE 754 has it: formatting, rounding modes, exceptions, classes. */
#include <fenv.h>
#include <float.h>
#include <inttypes.h>
#include <limits.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

int main(void) {
    volatile double zero = 0, tenth = 0.1;
    printf("%.17g %g %g %a %e\n", tenth + 0.2, 1e16, 1e-5, 0.1, 123456.789);
    printf("%.0f %.0f %.2f %8.3f|%-8.2f|%+d %#x %05d\n", 2.5, 3.5, 2.675, M_PI, 1.5, 7, 255, -42);
    double nan = zero / zero;
    printf("%d %d %d %d %g %g\n", nan == nan, isnan(nan) != 0, isinf(1 / zero) != 0, signbit(-zero) != 0, fmax(1, nan), 1 / -zero);
    printf("%g %g %g %g %ld %g\n", round(-2.5), rint(-2.5), trunc(-1.9), floor(-1.5), lround(2.5), fmod(-7, 3));
    printf("%d %d %d %u\n", -7 / 2, -7 % 3, (int)-1.9, (unsigned)-1);
    double sum = 0;
    float single = 0;
    for (int n = 1; n <= 1000000; n++) {
        sum += 1.0 / n;
        single += 1.0f / (float)n;
    }
    printf("%.15f %.6f\n", sum, single);
    uint64_t bits;
    double third = 1.0 / 3;
    memcpy(&bits, &third, sizeof bits);
    printf("%" PRIx64 " %.17g %.9g\n", bits, (double)0.1f, 0.1f);

    volatile double one = 1, three = 3;
    int modes[] = {FE_TONEAREST, FE_UPWARD, FE_DOWNWARD, FE_TOWARDZERO};
    for (int mode = 0; mode < 4; mode++) {
        fesetround(modes[mode]);
        printf("%.17g ", one / three);
    }
    fesetround(FE_TONEAREST);
    feclearexcept(FE_ALL_EXCEPT);
    volatile double infinite = one / zero;
    printf("%d %d %g\n", fetestexcept(FE_DIVBYZERO) != 0, fetestexcept(FE_OVERFLOW) != 0, infinite);
    char *end;
    double parsed = strtod("0x1.8p1xyz", &end);
    printf("%g %s %g\n", parsed, end, strtod("1e999", NULL));
    printf("%d %g %g %d\n", DBL_DIG, DBL_EPSILON, nextafter(1, 2) - 1, INT_MAX);
    printf("%.15g %.15g %.15g\n", sqrt(2), exp(1), atan2(-1, -0.0));
    printf("%g %g %d\n", hypot(3, 4), fma(2, 3, 4), ilogb(1024.0));
    return 0;
}
