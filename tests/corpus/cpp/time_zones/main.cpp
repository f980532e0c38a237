// Calendar arithmetic with chrono, zones through the C library.
#include <chrono>
#include <cstdlib>
#include <ctime>
#include <iomanip>
#include <iostream>
#include <sstream>

using namespace std::chrono;

void show(std::time_t instant) { std::cout << std::put_time(std::localtime(&instant), "%Y-%m-%d %H:%M:%S %Z") << '\n'; }

void show(year_month_day date) {
    std::cout << static_cast<int>(date.year()) << '-' << static_cast<unsigned>(date.month()) << '-' << static_cast<unsigned>(date.day()) << ' ';
}

int main() {
    show(1'700'000'000);
    show(1'711'846'799);
    show(1'711'846'800);
    for (const char* zone : {"America/New_York", "Asia/Kolkata", "Pacific/Auckland"}) {
        setenv("TZ", zone, 1);
        tzset();
        show(1'709'209'800);
    }
    auto leap = year{2024} / February / 29;
    show(sys_days(leap) + days(366));
    show(year{2024} / February / last);
    show(sys_days(2024y / January / Monday[2]));
    std::cout << (leap + years(1)).ok() << ' ' << weekday(sys_days(leap)).c_encoding() << '\n';
    auto between = sys_days(2024y / December / 25) - sys_days(leap);
    std::cout << between.count() << ' ' << duration_cast<weeks>(between).count() << '\n';
    hh_mm_ss clock(seconds(3723) + milliseconds(500));
    std::cout << clock.hours().count() << ':' << clock.minutes().count() << ':' << clock.seconds().count() << '.' << clock.subseconds().count() << '\n';
    std::tm parsed{};
    std::istringstream text("7 Mar 1999 08:05");
    text >> std::get_time(&parsed, "%d %b %Y %H:%M");
    std::cout << parsed.tm_year + 1900 << ' ' << parsed.tm_mon + 1 << ' ' << parsed.tm_hour << ' ' << timegm(&parsed) << '\n';
    std::cout << round<minutes>(90s).count() << ' ' << floor<minutes>(-1s).count() << ' ' << (1h + 30min == 5400s) << '\n';
}
