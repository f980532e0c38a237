import java.time.*;
import java.time.format.*;
import java.time.temporal.*;
import java.util.*;

/** Fixed instants in several zones, the calendar, and the local zone from the environment. */
public class Main {
    public static void main(String[] args) {
        var instant = Instant.parse("2024-02-29T12:30:00Z");
        for (var zone : List.of("Europe/Berlin", "America/New_York", "Asia/Kolkata", "Pacific/Auckland")) {
            System.out.println(instant.atZone(ZoneId.of(zone)));
        }
        System.out.println(ZoneId.systemDefault() + " " + Instant.ofEpochSecond(1_700_000_000).atZone(ZoneId.systemDefault()).toLocalDateTime());
        var berlin = ZoneId.of("Europe/Berlin");
        var before = ZonedDateTime.of(2024, 3, 31, 1, 30, 0, 0, berlin);
        System.out.println(before.plusHours(1).toLocalTime() + " " + Duration.between(before, before.plusDays(1)) + " " + LocalDateTime.of(2024, 3, 31, 2, 30).atZone(berlin).getHour());
        System.out.println(berlin.getRules().getValidOffsets(LocalDateTime.of(2024, 10, 27, 2, 30)));
        var leap = LocalDate.of(2024, Month.FEBRUARY, 29);
        System.out.println(leap.plusYears(1) + " " + LocalDate.of(2024, 1, 31).plusMonths(1) + " " + leap.getDayOfWeek() + " " + Period.between(leap, LocalDate.of(2025, 3, 1)));
        System.out.println(leap.with(TemporalAdjusters.firstInMonth(DayOfWeek.MONDAY)) + " " + ChronoUnit.DAYS.between(leap, LocalDate.of(2024, 12, 25)) + " " + LocalDate.of(2021, 1, 3).get(IsoFields.WEEK_OF_WEEK_BASED_YEAR));
        System.out.println(DateTimeFormatter.ofPattern("EEEE, d. MMMM uuuu", Locale.GERMAN).format(leap) + " " + DateTimeFormatter.RFC_1123_DATE_TIME.format(instant.atOffset(ZoneOffset.ofHoursMinutes(5, 30))));
        System.out.println(OffsetDateTime.parse("2024-06-01T10:00:00+05:30").toEpochSecond() + " " + Duration.ofMillis(3_723_500));
        try {
            LocalDate.parse("2023-02-29");
        } catch (DateTimeParseException impossible) {
            System.out.println(impossible.getMessage());
        }
        System.out.println(new Date(0).toString());
    }
}
