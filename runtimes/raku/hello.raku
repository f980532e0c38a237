say "Hello, World!";
