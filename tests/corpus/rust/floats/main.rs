//! Floating point as IEEE 754 has it, and whole numbers that wrap, saturate or refuse.

fn main() {
    println!("{} {:?} {} {:e} {:?}", 0.1 + 0.2, 1e16, 1e16, 123456.789, f64::MAX);
    println!("{:.0} {:.0} {:.2} {:8.3}|{:<8}|{:+} {:#x} {:#010b}", 2.5, 3.5, 2.675, std::f64::consts::PI, 1.5, 7, 255, 5);
    let (nan, infinity) = (f64::NAN, f64::INFINITY);
    println!("{} {:?} {} {} {:?}", nan == nan, nan.partial_cmp(&1.0), infinity - infinity, nan.max(1.0), -0.0);
    println!("{} {} {} {}", (-2.5_f64).round(), (-2.5_f64).round_ties_even(), (-1.9_f64).trunc(), -1.9 as i32);
    println!("{} {} {} {}", -7 % 3, (-7_i32).rem_euclid(3), -7.0 % 3.0, (-7_i32).div_euclid(2));
    println!("{} {} {} {}", nan as i32, 1e10 as i32, -1.0 as u8, 300_i32 as u8);
    let (sum, single) = (1..=1_000_000).fold((0.0_f64, 0.0_f32), |(sum, single), n| (sum + 1.0 / f64::from(n), single + 1.0 / n as f32));
    println!("{sum} {single}");
    println!("{:x} {} {}", 1.5_f64.to_bits(), 0.1_f32, f64::from(0.1_f32));
    println!("{:?} {:?} {:?}", "1e999".parse::<f64>(), ".5e1".parse::<f64>(), "abc".parse::<f64>().map_err(|error| error.to_string()));
    println!("{:?} {:?} {} {}", 127_i8.checked_add(1), 127_i8.overflowing_add(1), 127_i8.wrapping_add(1), 127_i8.saturating_add(1));
    println!("{} {} {}", u128::MAX, i64::MIN, (1..=30_u32).map(u128::from).product::<u128>());
    let mut values = [2.5, f64::NEG_INFINITY, -0.0, 0.0, f64::NAN];
    values.sort_by(f64::total_cmp);
    println!("{values:?} {}", 2_f64.sqrt().mul_add(2_f64.sqrt(), -2.0));
    println!("{:?} {}", i32::from_str_radix("-7f", 16), 10_u32.pow(9).leading_zeros());
}
