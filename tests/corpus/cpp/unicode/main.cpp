// Code points by an iterator of our own, strings of three widths, the name of a file.
#include <codecvt>
#include <filesystem>
#include <fstream>
#include <iomanip>
#include <iostream>
#include <map>
#include <string>
#include <string_view>

std::u32string decode(std::string_view text) {
    std::u32string points;
    for (size_t at = 0; at < text.size();) {
        auto byte = static_cast<unsigned char>(text[at]);
        int more = byte < 0x80 ? 0 : byte >> 5 == 6 ? 1 : byte >> 4 == 14 ? 2 : byte >> 3 == 30 ? 3 : -1;
        char32_t point = more == 0 ? byte : byte & (0x3f >> more);
        bool good = more >= 0 && at + static_cast<size_t>(more) < text.size();
        for (int next = 1; good && next <= more; ++next) {
            auto following = static_cast<unsigned char>(text[at + static_cast<size_t>(next)]);
            good = following >> 6 == 2;
            point = point << 6 | (following & 0x3f);
        }
        points += good ? point : U'\ufffd';
        at += good ? static_cast<size_t>(more) + 1 : 1;
    }
    return points;
}

std::string encode(char32_t point) {
    if (point < 0x80) return {static_cast<char>(point)};
    std::string tail;
    char32_t limit = 0x40;
    for (; point >= limit; limit >>= 1, point >>= 6) tail.insert(tail.begin(), static_cast<char>(0x80 | (point & 0x3f)));
    auto lead = static_cast<char>((0xff80 >> tail.size()) | point);
    return lead + tail;
}

int main() {
    for (std::string line; std::getline(std::cin, line);) {
        auto points = decode(line);
        std::string reversed;
        for (auto point = points.rbegin(); point != points.rend(); ++point) reversed += encode(*point);
        std::cout << line.size() << ' ' << points.size() << ' ' << reversed << '\n';
    }
    for (char32_t point : decode("aé中🚀")) std::cout << "U+" << std::hex << std::uppercase << static_cast<unsigned long>(point) << ' ';
    std::cout << std::dec << (decode("a\xff" "b\xe4\xb8") == U"a\ufffdb\ufffd\ufffd") << '\n';
    std::cout << std::u16string(u"👩‍🚀").size() << ' ' << std::u32string(U"👩‍🚀").size() << ' ' << sizeof("👩‍🚀") - 1 << '\n';
    std::map<char32_t, int> counts;
    for (char32_t point : decode("мама мыла раму")) ++counts[point];
    for (auto [point, count] : counts)
        if (count > 1) std::cout << encode(point) << '=' << count << ' ';
    int größe = 5;
    std::cout << größe << ' ' << std::quoted("say \"ü\"") << ' ' << R"(raw \n "text")" << '\n';

    namespace fs = std::filesystem;
    fs::create_directory("ordner-é");
    std::ofstream(fs::path("ordner-é") / "文件.txt") << "内容\n";
    for (const auto& entry : fs::directory_iterator("ordner-é")) std::cout << entry.path().string() << ' ' << entry.file_size() << '\n';
}
