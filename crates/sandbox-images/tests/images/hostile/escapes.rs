use super::{Attack, contained, refused, try_all};
use crate::archives::image;
use crate::arena::Arena;
use crate::tar_writer::{
    BLOCK_DEVICE, CHARACTER_DEVICE, FIFO, FILE, GNU_LINK, GNU_NAME, HARD_LINK, Head, Tar,
};

/// Enough to get from the root of an image to the top of the machine, from wherever.
const UP: &str = "../../../../../../../../../../../../../../../..";

fn one(layer: Tar) -> Vec<u8> {
    image("x:1", &[layer.end()])
}

fn two(first: Tar, second: Tar) -> Vec<u8> {
    image("x:1", &[first.end(), second.end()])
}

/// Those that would reach the canary, if names were followed.
#[expect(clippy::too_many_lines, reason = "a flat table, each row by itself")]
pub(super) fn at_the_canary(arena: &Arena) -> Vec<Attack> {
    let canary = arena.canary().to_str().unwrap().to_owned();
    // From where the image is unpacked, and by whichever way.
    let up = format!("{UP}{canary}");
    let nowhere = "lies below a link that leads nowhere in the image";
    vec![
        refused(
            "absolute path",
            one(Tar::new().pax(&[("path", format!("{canary}/file").as_bytes())]).file("x", "dead")),
            "has an absolute path",
        ),
        refused(
            "path with ..",
            one(Tar::new().pax(&[("path", format!("{up}/file").as_bytes())]).file("x", "dead")),
            "has '..' in its path",
        ),
        refused(
            "path with .. behind a directory",
            one(Tar::new()
                .directory("a/")
                .pax(&[("path", format!("a/../{up}/file").as_bytes())])
                .file("x", "dead")),
            "has '..' in its path",
        ),
        refused(
            "long name of GNU with ..",
            one(Tar::new().gnu(GNU_NAME, format!("{up}/file\0").as_bytes()).file("x", "dead")),
            "has '..' in its path",
        ),
        refused(
            "symlink out, then a file through it",
            one(Tar::new().symlink("out", &canary).file("out/file", "dead")),
            nowhere,
        ),
        refused(
            "relative symlink out, then a file through it",
            one(Tar::new().symlink("out", &up).file("out/file", "dead")),
            nowhere,
        ),
        refused(
            "symlink out, then a directory through it",
            one(Tar::new().symlink("out", &canary).directory("out/new/")),
            nowhere,
        ),
        refused(
            "symlink out in one layer, a file through it in the next",
            two(Tar::new().symlink("out", &canary), Tar::new().file("out/file", "dead")),
            nowhere,
        ),
        refused(
            "symlink to a symlink out",
            one(Tar::new().symlink("a", &canary).symlink("b", "a").file("b/file", "dead")),
            nowhere,
        ),
        refused(
            "directory replaced by a symlink out in the next layer, then written through",
            two(
                Tar::new().directory("d/").file("d/file", "x"),
                Tar::new().symlink("d", &canary).file("d/file", "dead"),
            ),
            nowhere,
        ),
        refused(
            "hard link to outside by an absolute path",
            one(Tar::new().hard_link("x", format!("{canary}/file"))),
            "is a hard link whose target has an absolute path",
        ),
        refused(
            "hard link to outside by ..",
            one(Tar::new().hard_link("x", format!("{up}/file"))),
            "is a hard link whose target has '..' in its path",
        ),
        refused(
            "long link of GNU to outside",
            one(Tar::new()
                .gnu(GNU_LINK, format!("{up}/file\0").as_bytes())
                .entry(Head::new(HARD_LINK, b"x", 0), b"")),
            "is a hard link whose target has '..' in its path",
        ),
        refused(
            "hard link through a symlink out",
            one(Tar::new().symlink("out", &canary).hard_link("x", "out/file")),
            "is a hard link to what is not in the image",
        ),
        refused(
            "hard link to a symlink out",
            one(Tar::new().symlink("out", format!("{canary}/file")).hard_link("x", "out")),
            "is a hard link to something that is no file",
        ),
        refused(
            "hard link made through a symlink out",
            one(Tar::new().file("a", "x").symlink("out", &canary).hard_link("out/new", "a")),
            nowhere,
        ),
        refused(
            "whiteout of ..",
            two(Tar::new().directory("a/"), Tar::new().file("a/.wh...", "")),
            "is a whiteout of '.' or '..'",
        ),
        contained(
            "whiteout through a symlink out",
            two(Tar::new().symlink("out", &canary), Tar::new().file("out/.wh.file", "")),
        ),
        contained(
            "opaque whiteout through a symlink out",
            two(Tar::new().symlink("out", &canary), Tar::new().file("out/.wh..wh..opq", "")),
        ),
        contained(
            "whiteout of a symlink out",
            two(Tar::new().symlink("out", &canary), Tar::new().file(".wh.out", "")),
        ),
        contained(
            "file in place of a symlink to a file outside",
            one(Tar::new().symlink("out", format!("{canary}/file")).file("other", "x")),
        ),
        contained(
            "directory in place of a symlink out, in the next layer",
            two(
                Tar::new().symlink("out", format!("{canary}/directory")),
                Tar::new().directory("out/").file("out/file", "dead"),
            ),
        ),
        contained(
            "file in place of a symlink out, in the next layer",
            two(
                Tar::new().symlink("out", format!("{canary}/file")),
                Tar::new().entry(Head::new(FILE, b"out", 4).mode(0o777), b"dead"),
            ),
        ),
    ]
}

#[test]
fn nothing_gets_out_through_names_and_links() {
    try_all(at_the_canary);
}

#[test]
fn names_that_mean_something_else_are_refused() {
    try_all(|_| {
        vec![
            refused(
                "symlinks in a circle",
                one(Tar::new().symlink("a", "b").symlink("b", "a").file("a/x", "")),
                "lies below links that lead in a circle",
            ),
            refused(
                "symlink to itself",
                one(Tar::new().symlink("a", "a").file("a/x", "")),
                "lies below links that lead in a circle",
            ),
            refused(
                "file below a file",
                one(Tar::new().file("a", "").file("a/x", "")),
                "lies below something that is no directory",
            ),
            refused(
                "whiteout of .",
                one(Tar::new().file("a/.wh..", "")),
                "is a whiteout of '.' or '..'",
            ),
            refused("whiteout of nothing", one(Tar::new().file(".wh.", "")), "whiteout of nothing"),
            refused(
                "whiteout of an unknown kind",
                one(Tar::new().file(".wh..wh.plnk", "")),
                "is a whiteout of an unknown kind",
            ),
            refused(
                "file below a whiteout",
                one(Tar::new().directory(".wh.a/b/")),
                "lies below a name that is kept for whiteouts",
            ),
            refused(
                "block device",
                one(Tar::new().entry(Head::new(BLOCK_DEVICE, b"sda", 0).device(8, 0), b"")),
                "'sda' is a device",
            ),
            refused(
                "character device",
                one(Tar::new().entry(Head::new(CHARACTER_DEVICE, b"mem", 0).device(1, 1), b"")),
                "'mem' is a device",
            ),
            contained(
                "whiteout of overlay file systems",
                one(Tar::new().entry(Head::new(CHARACTER_DEVICE, b"gone", 0), b"")),
            ),
            refused(
                "block device 0, 0",
                one(Tar::new().entry(Head::new(BLOCK_DEVICE, b"sda", 0), b"")),
                "'sda' is a device",
            ),
            refused("pipe", one(Tar::new().entry(Head::new(FIFO, b"p", 0), b"")), "'p' is a pipe"),
            refused(
                "file, then a directory of that name",
                one(Tar::new().file("a", "").directory("a/")),
                "is there twice, as different things",
            ),
            refused(
                "directory, then a symlink of that name, then a file through it",
                one(Tar::new().directory("a/").symlink("a", "/").file("a/x", "")),
                "is there twice, as different things",
            ),
            refused(
                "file in place of a directory that the layer uses",
                two(Tar::new().directory("a/"), Tar::new().file("a/x", "").file("a", "")),
                "takes the place of a directory that the same layer put something in",
            ),
            refused(
                "hard link to itself",
                one(Tar::new().hard_link("a", "a")),
                "is a hard link to what is not in the image",
            ),
            refused(
                "hard link to a directory",
                one(Tar::new().directory("a/").hard_link("b", "a")),
                "is a hard link to something that is no file",
            ),
            refused(
                "hard link to the root",
                one(Tar::new().hard_link("b", ".")),
                "is a hard link to what is not in the image",
            ),
            refused(
                "the root as a symlink",
                one(Tar::new().symlink("./", "/etc")),
                "stands for the root and is no directory",
            ),
            refused(
                "symlink without a target",
                one(Tar::new().symlink("a", "")),
                "is a link that leads nowhere",
            ),
        ]
    });
}
