// A function whose return type is found by asking for the return type of the same function with a
// longer type: the compiler's own bound of 900 levels ends it, with a message for each of them.
template <typename T>
struct Longer {};

template <typename T>
auto next(T) -> decltype(next(Longer<Longer<T>>{})) {
    return next(Longer<Longer<T>>{});
}

template <typename T>
struct Endless {
    typename Endless<Longer<T>>::type value;
};

int main() {
    return sizeof(Endless<int>);
}
