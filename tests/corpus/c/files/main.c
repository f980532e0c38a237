/* Streams and descriptors, positions, directories, links, locks, mapped memory, a file without a name. */
#define _GNU_SOURCE
#include <dirent.h>
#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

struct record { uint32_t number; float value; };

static int remove_each(const char *path, const struct stat *status, int kind, struct FTW *position) {
    (void)status, (void)kind, (void)position;
    return remove(path);
}

int main(void) {
    mkdir("data", 0755);
    mkdir("data/deep", 0700);
    FILE *notes = fopen("data/notes.txt", "w+");
    fputs("one\ntwo\nthree\n", notes);
    fseek(notes, 4, SEEK_SET);
    char line[64];
    char *second = fgets(line, sizeof line, notes);
    printf("%s%ld\n", second, ftell(notes));
    fclose(notes);
    int appended = open("data/notes.txt", O_WRONLY | O_APPEND);
    dprintf(appended, "%s\n", "four");
    close(appended);

    FILE *records = fopen("data/deep/records.bin", "wb");
    for (uint32_t number = 0; number < 100; number++)
        fwrite(&(struct record){number, (float)number / 4}, sizeof(struct record), 1, records);
    fclose(records);
    struct record one;
    int file = open("data/deep/records.bin", O_RDWR);
    ssize_t size = pread(file, &one, sizeof one, 42 * sizeof one);
    struct record *all = mmap(NULL, 100 * sizeof one, PROT_READ, MAP_PRIVATE, file, 0);
    printf("%zd %u %g %g\n", size, one.number, one.value, all[99].value);
    struct stat status;
    if (ftruncate(file, 80) == 0 && fstat(file, &status) == 0)
        printf("%lld %o\n", (long long)status.st_size, status.st_mode & 0700);
    close(file);

    printf("%d %d\n", symlink("notes.txt", "data/link"), link("data/notes.txt", "data/same"));
    stat("data/link", &status);
    char target[64] = "";
    ssize_t length = readlink("data/link", target, sizeof target - 1);
    printf("%s %zd links %d\n", target, length, (int)status.st_nlink);
    struct dirent **names;
    int count = scandir("data", &names, NULL, alphasort);
    for (int at = 0; at < count; at++)
        printf("%s%c", names[at]->d_name, at + 1 == count ? '\n' : ' ');
    FILE *nameless = tmpfile();
    fprintf(nameless, "%d %s %x", 12, "words", 255);
    rewind(nameless);
    int number;
    unsigned hex;
    if (fscanf(nameless, "%d %63s %x", &number, line, &hex) == 3)
        printf("%d %s %u\n", number, line, hex);
    int full = rmdir("data");
    printf("%d %s\n", full, strerror(errno));
    printf("%d\n", nftw("data", remove_each, 16, FTW_DEPTH | FTW_PHYS));
    FILE *absent = fopen("data/notes.txt", "r");
    printf("%d %s\n", absent == NULL, strerror(errno));
    FILE *result = fopen("result.txt", "w");
    return fprintf(result, "kept\n") == 5 ? fclose(result) : 1;
}
