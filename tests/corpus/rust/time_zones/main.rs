//! The calendar computed by hand, and the zone by the C library.

use std::time::{Duration, UNIX_EPOCH};

/// Days since 1970-01-01 to a date: eras of 400 years that begin in March.
fn civil(days: i64) -> (i64, i64, i64) {
    let shifted = days + 719_468;
    let (era, day) = (shifted.div_euclid(146_097), shifted.rem_euclid(146_097));
    let year = (day - day / 1460 + day / 36_524 - day / 146_096) / 365;
    let of_year = day - (365 * year + year / 4 - year / 100);
    let month = (5 * of_year + 2) / 153;
    let date = of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    (era * 400 + year + i64::from(month <= 2), month, date)
}

#[repr(C)]
#[derive(Default)]
struct Broken {
    second: i32, minute: i32, hour: i32, day: i32, month: i32, year: i32,
    weekday: i32, of_year: i32, daylight: i32, offset: i64, zone: usize,
}

unsafe extern "C" {
    fn localtime_r(time: *const i64, broken: *mut Broken) -> *mut Broken;
    safe fn tzset();
}

fn local(seconds: i64) -> String {
    let mut broken = Broken::default();
    // SAFETY: both point to values of ours that live through the call.
    unsafe { localtime_r(&seconds, &mut broken) };
    format!("{:02}:{:02} {:+} daylight={}", broken.hour, broken.minute, broken.offset / 60, broken.daylight)
}

fn main() {
    for days in [0, 59, 11_016, 19_782, -1, -719_468, 2_932_896] {
        let (year, month, day) = civil(days);
        print!("{year:04}-{month:02}-{day:02} ");
    }
    println!();
    tzset();
    // One second before and at the change to daylight saving time, and in the repeated hour.
    for seconds in [1_711_846_799, 1_711_846_800, 1_729_989_000, 1_729_992_600, 1_700_000_000] {
        println!("{seconds}: {}", local(seconds));
    }
    let instant = UNIX_EPOCH + Duration::from_millis(1_709_210_096_789);
    println!("{:?}", instant.duration_since(UNIX_EPOCH).unwrap());
    println!("{:?} {:?}", Duration::from_secs_f64(3723.5), (UNIX_EPOCH - Duration::from_secs(1)).duration_since(UNIX_EPOCH).is_err());
    println!("{:?} {:?}", Duration::MAX.checked_add(Duration::from_nanos(1)), Duration::from_micros(1500) / 4);
}
