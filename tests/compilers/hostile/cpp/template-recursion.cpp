// Each instance needs two further ones. The compiler's own bound is one of depth, 900 levels, and this
// stays far below it; but there are two to the power of sixty instances.
template <int depth, long path>
struct Tree {
    static constexpr long value =
        Tree<depth - 1, 2 * path>::value + Tree<depth - 1, 2 * path + 1>::value;
};
template <long path>
struct Tree<0, path> {
    static constexpr long value = path;
};

int main() {
    return Tree<60, 1>::value != 0;
}
