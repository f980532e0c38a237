//! Text and binary files, positions, directories, links, permissions, temporary places.

use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, BufWriter, ErrorKind, Read, Seek, SeekFrom, Write};
use std::os::unix::fs::{FileExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

fn walk(directory: &Path, found: &mut Vec<PathBuf>) -> io::Result<()> {
    for entry in fs::read_dir(directory)? {
        let entry = entry?;
        found.push(entry.path());
        if entry.file_type()?.is_dir() {
            walk(&entry.path(), found)?;
        }
    }
    Ok(())
}

fn main() -> io::Result<()> {
    fs::create_dir_all("data/deep/er")?;
    fs::write("data/notes.txt", "one\ntwo\nthree\n")?;
    let mut notes = OpenOptions::new().append(true).read(true).open("data/notes.txt")?;
    writeln!(notes, "four")?;
    notes.seek(SeekFrom::Start(4))?;
    let lines = BufReader::new(&notes).lines().collect::<io::Result<Vec<_>>>()?;
    println!("{lines:?} {}", notes.metadata()?.len());

    let mut writer = BufWriter::new(File::create_new("data/deep/records.bin")?);
    for number in 0..100_u32 {
        writer.write_all(&number.to_le_bytes())?;
        writer.write_all(&(f64::from(number) / 4.0).to_le_bytes())?;
    }
    drop(writer);
    let (mut number, mut value) = ([0; 4], [0; 8]);
    let records = File::open("data/deep/records.bin")?;
    records.read_exact_at(&mut number, 12 * 42)?;
    records.read_exact_at(&mut value, 12 * 42 + 4)?;
    println!("{} {} {}", u32::from_le_bytes(number), f64::from_le_bytes(value), records.metadata()?.len());
    println!("{:?}", File::create_new("data/notes.txt").unwrap_err().kind());

    let temporary = std::env::temp_dir().join("corpus-copy");
    println!("{}", fs::copy("data/notes.txt", &temporary)?);
    // A temporary directory may be on another device, where renaming ends.
    fs::copy(&temporary, "data/deep/er/draft.txt")?;
    fs::remove_file(&temporary)?;
    fs::rename("data/deep/er/draft.txt", "data/deep/er/copy.txt")?;
    fs::set_permissions("data/deep/er/copy.txt", fs::Permissions::from_mode(0o640))?;
    println!("{:o}", fs::metadata("data/deep/er/copy.txt")?.permissions().mode() & 0o777);
    symlink("notes.txt", "data/link")?;
    fs::hard_link("data/notes.txt", "data/same")?;
    let mut found = Vec::new();
    walk(Path::new("data"), &mut found)?;
    found.sort();
    println!("{}", found.iter().map(|path| path.display().to_string()).collect::<Vec<_>>().join(" "));
    fs::remove_dir_all("data")?;
    println!("{}", File::open("data/notes.txt").is_err_and(|error| error.kind() == ErrorKind::NotFound));

    let mut table = String::new();
    File::open("table.csv")?.read_to_string(&mut table)?;
    let sum: f64 = table.lines().skip(1).filter_map(|line| line.split(',').nth(1)?.parse::<f64>().ok()).sum();
    fs::write("result.txt", format!("sum {sum}\n"))
}
