/* Multibyte and wide characters in a UTF-8 locale; a decoder of our own; the name of a file. */
#include <dirent.h>
#include <locale.h>
#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <uchar.h>
#include <wchar.h>
#include <wctype.h>

static size_t decode(const unsigned char *text, uint32_t *point) {
    size_t more = *text < 0x80 ? 0 : *text >> 5 == 6 ? 1 : *text >> 4 == 14 ? 2 : *text >> 3 == 30 ? 3 : 9;
    if (more == 9)
        return 0;
    *point = more == 0 ? *text : *text & (0x3f >> more);
    for (size_t at = 1; at <= more; at++) {
        if (text[at] >> 6 != 2)
            return 0;
        *point = *point << 6 | (text[at] & 0x3f);
    }
    return more + 1;
}

int main(void) {
    printf("%s\n", setlocale(LC_ALL, "") != NULL && MB_CUR_MAX > 1 ? "multibyte" : "single bytes");
    char line[256];
    while (fgets(line, sizeof line, stdin) != NULL) {
        line[strcspn(line, "\n")] = '\0';
        wchar_t wide[256], reversed[256] = L"";
        size_t length = mbstowcs(wide, line, 256);
        for (size_t at = 0; at < length; at++)
            reversed[length - 1 - at] = wide[at];
        reversed[length] = L'\0';
        printf("%zu %zu %ls\n", strlen(line), length, reversed);
    }
    for (const char *text = "aé中🚀"; *text != '\0';) {
        uint32_t point = 0;
        size_t size = decode((const unsigned char *)text, &point);
        printf("U+%04X:%zu ", point, size);
        text += size;
    }
    uint32_t unused;
    printf("%zu %zu\n", decode((const unsigned char *)"\xff", &unused), decode((const unsigned char *)"\xc3(", &unused));
    printf("%lc%lc %d %d\n", towupper(L'é'), towlower(L'Ω'), iswalpha(L'ж') != 0, iswdigit(L'٣') != 0);
    const char16_t rocket[] = u"🚀";
    printf("%zu %x %x %zu\n", sizeof rocket / sizeof *rocket - 1, rocket[0], rocket[1], strlen(u8"größe"));
    wchar_t unit;
    printf("%d\n", (int)mbrtowc(&unit, "\xe4\xb8", 2, &(mbstate_t){0}));

    FILE *file = fopen("grüße-世界.txt", "w");
    fputs("Привет, мир\n", file);
    fclose(file);
    DIR *here = opendir(".");
    for (struct dirent *entry; (entry = readdir(here)) != NULL;)
        if (strstr(entry->d_name, ".txt") != NULL)
            puts(entry->d_name);
    return closedir(here);
}
