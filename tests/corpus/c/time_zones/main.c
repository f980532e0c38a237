/* Fixed instants through the C library: zones from the environment and of our own, parsing, arithmetic. */
#define _GNU_SOURCE
#include <stdio.h>
#include <stdlib.h>
#include <time.h>

static void show(time_t instant) {
    char text[80];
    strftime(text, sizeof text, "%Y-%m-%d %H:%M:%S %Z %z", localtime(&instant));
    puts(text);
}

int main(void) {
    show(1700000000);
    show(1711846799);
    show(1711846800);
    const char *zones[] = {"America/New_York", "Asia/Kolkata", "Pacific/Auckland", "XYZ-3:30", "UTC"};
    for (int at = 0; at < 5; at++) {
        setenv("TZ", zones[at], 1);
        tzset();
        show(1709209800);
    }
    struct tm leap = {.tm_year = 124, .tm_mon = 1, .tm_mday = 29 + 366};
    time_t instant = timegm(&leap);
    printf("%d-%02d-%02d %lld %d %d\n", leap.tm_year + 1900, leap.tm_mon + 1, leap.tm_mday, (long long)instant, leap.tm_wday, leap.tm_yday);
    struct tm parsed = {0};
    const char *rest = strptime("7 Mar 1999 08:05 tail", "%d %b %Y %H:%M", &parsed);
    char text[80];
    strftime(text, sizeof text, "%A %j %U %I%p", &parsed);
    printf("%s|%s\n", text, rest);
    setenv("TZ", "Europe/Berlin", 1);
    tzset();
    struct tm missing = {.tm_year = 124, .tm_mon = 2, .tm_mday = 31, .tm_hour = 2, .tm_min = 30, .tm_isdst = 0};
    mktime(&missing);
    printf("%02d:%02d %d\n", missing.tm_hour, missing.tm_min, missing.tm_isdst);
    time_t far = 1LL << 31;
    printf("%s%.0f\n", asctime(gmtime(&far)), difftime(far, -1));
    return 0;
}
