// Streams, positions, directories and their sizes, a file that is removed with its object.
#include <algorithm>
#include <cstdint>
#include <filesystem>
#include <fstream>
#include <iostream>
#include <iterator>
#include <sstream>
#include <string>
#include <system_error>
#include <vector>

namespace fs = std::filesystem;

struct Record {
    std::uint32_t number;
    float value;
};

class Temporary {
public:
    explicit Temporary(const std::string& name) : path(fs::temp_directory_path() / name) { std::ofstream(path) << "temporary"; }
    ~Temporary() { fs::remove(path); }
    const fs::path path;
};

int main() {
    fs::create_directories("data/deep/er");
    std::ofstream("data/notes.txt") << "one\ntwo\nthree\n";
    std::ofstream("data/notes.txt", std::ios::app) << "four\n";
    std::ifstream notes("data/notes.txt");
    notes.seekg(4);
    std::string line;
    std::getline(notes, line);
    std::cout << line << ' ' << notes.tellg() << ' ' << std::count(std::istreambuf_iterator<char>(notes), {}, '\n') << '\n';

    std::fstream records("data/deep/records.bin", std::ios::binary | std::ios::in | std::ios::out | std::ios::trunc);
    for (std::uint32_t number = 0; number < 100; ++number) {
        Record record{number, static_cast<float>(number) / 4};
        records.write(reinterpret_cast<const char*>(&record), sizeof record);
    }
    Record one{};
    records.seekg(42 * sizeof one).read(reinterpret_cast<char*>(&one), sizeof one);
    std::cout << one.number << ' ' << one.value << ' ' << records.gcount() << ' ' << fs::file_size("data/deep/records.bin") << '\n';
    records.close();
    fs::resize_file("data/deep/records.bin", 80);

    fs::path kept;
    {
        Temporary temporary("corpus.tmp");
        kept = temporary.path;
        std::cout << fs::exists(kept);
        fs::copy_file(kept, "data/deep/er/copy");
    }
    std::cout << fs::exists(kept) << ' ' << fs::file_size("data/deep/er/copy") << '\n';
    fs::create_symlink("notes.txt", "data/link");
    fs::rename("data/deep/er", "data/moved");
    std::vector<std::string> names;
    for (const auto& entry : fs::recursive_directory_iterator("data"))
        names.push_back(entry.path().lexically_relative("data").string() + (entry.is_symlink() ? "@" : entry.is_directory() ? "/" : ""));
    std::sort(names.begin(), names.end());
    for (const auto& name : names) std::cout << name << ' ';
    std::cout << fs::path("a/b/../c.tar.gz").lexically_normal().string() << ' ' << fs::path("x/c.tar.gz").stem().string() << '\n';

    std::error_code error;
    std::cout << fs::remove("data", error) << ' ' << error.message() << '\n';
    std::cout << fs::remove_all("data") << ' ' << std::ifstream("data/notes.txt").is_open() << '\n';
    std::istringstream table("wren 9.5\nrook 450\n");
    std::ofstream result("result.txt");
    std::string name;
    for (double grams; table >> name >> grams;) result << name << ';' << grams * 2 << '\n';
}
