// Each instance needs the next one. The compiler stops at 900 levels; this is below that bound and
// needs two further instances on each level, so that there are two to the power of 800.
template <int depth, long path>
struct Tree {
    static constexpr long value = Tree<depth - 1, 2 * path>::value + Tree<depth - 1, 2 * path + 1>::value;
};
template <long path>
struct Tree<0, path> {
    static constexpr long value = path;
};

int main() {
    return Tree<60, 1>::value != 0;
}
