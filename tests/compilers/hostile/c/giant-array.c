// One initialised element makes the whole array part of the object file: eight gigabytes of zeros that
// the assembler has to write.
static volatile char giant[8L << 30] = {1};

int main(void) {
    return giant[1];
}
