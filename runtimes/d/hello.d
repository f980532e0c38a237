import std.stdio;

void main()
{
    writeln("Hello, World!");
}
