// A type that holds a longer one of its own kind. The compiler's bound of 900 levels ends it, with a message
// that spells out the longest of them.
template <typename T>
struct Longer {};

template <typename T>
struct Endless {
    typename Endless<Longer<T>>::type value;
};

int main() {
    return sizeof(Endless<int>);
}
