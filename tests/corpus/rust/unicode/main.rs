//! Bytes, characters and their edges; case; bad bytes; the name of a file.

use std::ffi::OsString;
use std::io::BufRead;

fn main() -> std::io::Result<()> {
    for line in std::io::stdin().lock().lines() {
        let line = line?;
        println!("{} {} {}", line.len(), line.chars().count(), line.chars().rev().collect::<String>());
    }
    println!("{:?}", "aé中🚀".char_indices().map(|(at, c)| (at, c.len_utf8(), c.len_utf16())).collect::<Vec<_>>());
    println!("{} {} {}", "straße".to_uppercase(), "ὈΔΥΣΣΕΎΣ".to_lowercase(), 'İ'.to_lowercase().count());
    println!("{:?} {:?}", "é".is_char_boundary(1), "aé".get(0..2));
    println!("{} {}", 'é'.escape_unicode(), "tab\t\u{200b}ü".escape_debug());
    println!("{} {} {}", '٣'.is_numeric(), 'Ω'.is_uppercase(), '\u{a0}'.is_whitespace());
    let bad = b"a\xffb\xe4\xb8";
    let error = std::str::from_utf8(bad).unwrap_err();
    println!("{} {:?} {}", error.valid_up_to(), error.error_len(), String::from_utf8_lossy(bad));
    println!("{:x?} {:?}", "👩‍🚀".encode_utf16().collect::<Vec<_>>(), char::from_u32(0xd800));
    println!("{}", "é" == "e\u{301}");
    let größe = "größe".len();
    println!("{größe:>4}|{:·^9}|{:<5}|", "日本", "é");

    std::fs::write("grüße-世界.txt", "Привет, мир\n")?;
    let mut names: Vec<OsString> = std::fs::read_dir(".")?.map(|entry| Ok(entry?.file_name())).collect::<std::io::Result<_>>()?;
    names.retain(|name| name.to_string_lossy().ends_with(".txt"));
    println!("{names:?}");
    Ok(())
}
