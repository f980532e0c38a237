use super::{check_all, contained, rejected};
use crate::archives::{Files, config, gzip, image};
use crate::tar_writer::{FILE, Head, Tar};

fn one(layer: Tar) -> Vec<u8> {
    image("x:1", &[layer.end()])
}

/// An image with this layer and a matching configuration.
fn layer(content: Vec<u8>) -> Vec<u8> {
    image("x:1", &[content])
}

/// An image with a layer that cannot be decompressed, so that the configuration cannot match.
fn broken(sent: Vec<u8>) -> Vec<u8> {
    Files::layout("x:1", &config(&[Vec::new()]), &[sent]).tar()
}

#[test]
fn broken_archives_are_rejected() {
    let good = Tar::new().file("a", vec![b'a'; 5000]).file("b", vec![b'b'; 5000]).end();
    let cut = |length: usize| good[..length].to_vec();
    let compressed = gzip(&good);
    let zstd = ruzstd::encoding::compress_to_vec(
        good.as_slice(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let unreadable = "cannot read the tar archive";
    let mut wrong_sum = good.clone();
    wrong_sum[3] ^= 1;
    let whole = image("x:1", std::slice::from_ref(&good));
    let outer_cut = whole[..whole.len() / 2].to_vec();
    let outer_compressed = gzip(&whole);
    check_all(|_| {
        vec![
            rejected("layer that ends in a file", layer(cut(3000)), unreadable),
            rejected("layer that ends in a header", layer(cut(6000)), unreadable),
            rejected("layer whose header does not add up", layer(wrong_sum.clone()), unreadable),
            rejected(
                "compressed layer that ends early",
                broken(compressed[..compressed.len() - 20].to_vec()),
                unreadable,
            ),
            rejected(
                "layer of zstd that ends early",
                broken(zstd[..zstd.len() - 5].to_vec()),
                unreadable,
            ),
            rejected(
                "garbage with the magic number of gzip",
                broken(b"\x1f\x8bgarbage".repeat(99)),
                unreadable,
            ),
            rejected("layer of garbage", layer(b"garbage ".repeat(999)), unreadable),
            rejected("archive that ends early", outer_cut.clone(), "cannot read the archive"),
            rejected(
                "compressed archive that ends early",
                outer_compressed[..outer_compressed.len() / 2].to_vec(),
                "cannot read the archive",
            ),
            rejected("archive of garbage", b"garbage ".repeat(999), "cannot read the archive"),
            rejected("empty archive", Vec::new(), "neither a 'docker save' archive"),
            rejected(
                "archive without an image",
                Tar::new().file("a", "x").end(),
                "neither a 'docker save' archive",
            ),
        ]
    });
}

#[test]
fn malformed_entries_are_rejected() {
    let sized = |size: &[u8]| one(Tar::new().entry(Head::new(FILE, b"a", 0).bytes(124, size), b""));
    check_all(|_| {
        vec![
            rejected("size that is huge", sized(b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff"), ""),
            rejected("size that overflows", sized(&[0xff; 12]), ""),
            rejected("size that is negative", sized(b"-0000000001\0"), ""),
            rejected("size that is not a number", sized(b"zzzzzzzzzzz\0"), ""),
            rejected(
                "mode that is not a number",
                one(Tar::new().entry(Head::new(FILE, b"a", 0).bytes(100, b"zzzzzzz\0"), b"")),
                "has an invalid mode",
            ),
            rejected(
                "two sizes",
                one(Tar::new().pax(&[("size", b"1024")]).file("a", "x")),
                "has two different sizes",
            ),
            rejected(
                "size of POSIX that is not a number",
                one(Tar::new().pax(&[("size", b"-1")]).file("a", "x")),
                "is not a valid size",
            ),
            rejected(
                "path of POSIX with ..",
                one(Tar::new().pax(&[("path", b"../x")]).file("a", "x")),
                "has '..' in its path",
            ),
            rejected(
                "zero byte in a name",
                one(Tar::new().pax(&[("path", b"a\0b")]).file("a", "x")),
                "has a zero byte in its name",
            ),
            rejected(
                "zero byte in a target",
                one(Tar::new().pax(&[("linkpath", b"a\0b")]).symlink("a", "x")),
                "is a link with a zero byte in its target",
            ),
            rejected("no name", one(Tar::new().file("", "x")), "has no name"),
            contained(
                "name that is not UTF-8, and names with control characters",
                one(Tar::new().file(b"\xff\xfe", "x").file("a\nb\x1b[2J", "x").file(" ", "x")),
            ),
            contained(
                "empty values of POSIX",
                one(Tar::new().pax(&[("path", b"")]).file("a", "x")),
            ),
        ]
    });
}
