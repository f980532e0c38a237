// Five hundred functions with two errors in each, and every error is told with every macro on the way to
// it: half a kilobyte of source becomes most of a megabyte of messages.
#define E(n) int f##n(void) { int undeclared##n[undeclared_too##n]; return missing##n; }
#define F(n) E(n##0) E(n##1) E(n##2) E(n##3) E(n##4) E(n##5) E(n##6) E(n##7) E(n##8) E(n##9)
#define G(n) F(n##0) F(n##1) F(n##2) F(n##3) F(n##4) F(n##5) F(n##6) F(n##7) F(n##8) F(n##9)

G(1) G(2) G(3) G(4) G(5)

int main(void) {
    return 0;
}
