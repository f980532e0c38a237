/**
 * Whether the one type is a subtype of the other is decided by a longer question of the same kind, and so
 * on: the compiler's search has no end but that of its stack.
 */
public class EndlessSubtype {
    interface Below<T> {}

    interface Chain<T> extends Below<Below<? super Chain<Chain<T>>>> {}

    static Below<? super Chain<Byte>> ask(Chain<Byte> chain) {
        return chain;
    }

    public static void main(String[] arguments) {}
}
