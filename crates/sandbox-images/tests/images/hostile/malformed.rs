use super::{contained, refused, try_all};
use crate::archives::{Files, config, gzip, image};
use crate::tar_writer::{FILE, Head, Tar};

fn one(layer: Tar) -> Vec<u8> {
    image("x:1", &[layer.end()])
}

/// An image whose layer is this, whatever it is. What the configuration says about it is true.
fn layer(content: Vec<u8>) -> Vec<u8> {
    image("x:1", &[content])
}

/// The same for a layer that cannot be decompressed, so that nothing true can be said.
fn broken(sent: Vec<u8>) -> Vec<u8> {
    Files::layout("x:1", &config(&[Vec::new()]), &[sent]).tar()
}

#[test]
fn archives_that_are_broken_are_refused() {
    let good = Tar::new().file("a", vec![b'a'; 5000]).file("b", vec![b'b'; 5000]).end();
    let cut = |length: usize| good[..length].to_vec();
    let compressed = gzip(&good);
    let zstd = ruzstd::encoding::compress_to_vec(
        good.as_slice(),
        ruzstd::encoding::CompressionLevel::Fastest,
    );
    let unreadable = "it cannot be read as a tar archive";
    let mut wrong_sum = good.clone();
    wrong_sum[3] ^= 1;
    let whole = image("x:1", std::slice::from_ref(&good));
    let outer_cut = whole[..whole.len() / 2].to_vec();
    let outer_compressed = gzip(&whole);
    try_all(|_| {
        vec![
            refused("layer that ends in a file", layer(cut(3000)), unreadable),
            refused("layer that ends in a header", layer(cut(6000)), unreadable),
            refused("layer whose header does not add up", layer(wrong_sum.clone()), unreadable),
            refused(
                "compressed layer that ends early",
                broken(compressed[..compressed.len() - 20].to_vec()),
                unreadable,
            ),
            refused(
                "layer of zstd that ends early",
                broken(zstd[..zstd.len() - 5].to_vec()),
                unreadable,
            ),
            refused(
                "garbage in the form of gzip",
                broken(b"\x1f\x8bgarbage".repeat(99)),
                unreadable,
            ),
            refused("layer of garbage", layer(b"garbage ".repeat(999)), unreadable),
            refused("archive that ends early", outer_cut.clone(), "it cannot be read"),
            refused(
                "compressed archive that ends early",
                outer_compressed[..outer_compressed.len() / 2].to_vec(),
                "it cannot be read",
            ),
            refused("archive of garbage", b"garbage ".repeat(999), "it cannot be read"),
            refused("empty archive", Vec::new(), "neither an archive"),
            refused(
                "archive without an image",
                Tar::new().file("a", "x").end(),
                "neither an archive",
            ),
        ]
    });
}

#[test]
fn entries_that_are_malformed_are_refused() {
    let sized = |size: &[u8]| one(Tar::new().entry(Head::new(FILE, b"a", 0).bytes(124, size), b""));
    try_all(|_| {
        vec![
            refused("size that is huge", sized(b"\x80\0\0\0\x7f\xff\xff\xff\xff\xff\xff\xff"), ""),
            refused("size that overflows", sized(&[0xff; 12]), ""),
            refused("size that is negative", sized(b"-0000000001\0"), ""),
            refused("size that is no number", sized(b"zzzzzzzzzzz\0"), ""),
            refused(
                "mode that is no number",
                one(Tar::new().entry(Head::new(FILE, b"a", 0).bytes(100, b"zzzzzzz\0"), b"")),
                "has a mode that is no number",
            ),
            refused(
                "two sizes",
                one(Tar::new().pax(&[("size", b"1024")]).file("a", "x")),
                "has two sizes that differ",
            ),
            refused(
                "size of POSIX that is no number",
                one(Tar::new().pax(&[("size", b"-1")]).file("a", "x")),
                "is a size that is no number",
            ),
            refused(
                "path of POSIX with ..",
                one(Tar::new().pax(&[("path", b"../x")]).file("a", "x")),
                "has '..' in its path",
            ),
            refused(
                "zero byte in a name",
                one(Tar::new().pax(&[("path", b"a\0b")]).file("a", "x")),
                "has a zero byte in its name",
            ),
            refused(
                "zero byte in a target",
                one(Tar::new().pax(&[("linkpath", b"a\0b")]).symlink("a", "x")),
                "is a link with a zero byte in its target",
            ),
            refused("no name", one(Tar::new().file("", "x")), "has no name"),
            contained(
                "name that is no text, and names with control characters",
                one(Tar::new().file(b"\xff\xfe", "x").file("a\nb\x1b[2J", "x").file(" ", "x")),
            ),
            contained(
                "empty values of POSIX",
                one(Tar::new().pax(&[("path", b"")]).file("a", "x")),
            ),
        ]
    });
}
