//! One small program in eight languages: it greets whatever line it reads.

/// A language, and the program in it. `VARIANT` is what makes one text differ from another.
#[derive(Debug)]
pub(super) struct Program {
    pub(super) language: &'static str,
    source: &'static str,
    /// How a comment begins.
    comment: &'static str,
}

/// Texts of each program. All but the first few requests find them compiled.
pub(super) const VARIANTS: usize = 4;

pub(super) const PROGRAMS: &[Program] = &[
    Program { language: "python", source: "print('hello VARIANT', input())\n", comment: "#" },
    Program {
        language: "javascript",
        source: "const text = require('fs').readFileSync(0, 'utf8');\n\
                 console.log('hello VARIANT ' + text.trim());\n",
        comment: "//",
    },
    Program {
        language: "typescript",
        source: "import { readFileSync } from 'fs';\n\
                 const text: string = readFileSync(0, 'utf8');\n\
                 console.log('hello VARIANT ' + text.trim());\n",
        comment: "//",
    },
    Program {
        language: "go",
        source: "package main\n\
                 import (\"bufio\"; \"fmt\"; \"os\")\n\
                 func main() {\n\
                 scanner := bufio.NewScanner(os.Stdin)\n\
                 scanner.Scan()\n\
                 fmt.Println(\"hello VARIANT\", scanner.Text())\n\
                 }\n",
        comment: "//",
    },
    Program {
        language: "rust",
        source: "fn main() {\n\
                 let mut line = String::new();\n\
                 std::io::stdin().read_line(&mut line).unwrap();\n\
                 println!(\"hello VARIANT {}\", line.trim());\n\
                 }\n",
        comment: "//",
    },
    Program {
        language: "java",
        source: "public class Main {\n\
                 public static void main(String[] args) {\n\
                 String line = new java.util.Scanner(System.in).nextLine();\n\
                 System.out.println(\"hello VARIANT \" + line);\n\
                 }\n\
                 }\n",
        comment: "//",
    },
    Program {
        language: "c",
        source: "#include <stdio.h>\n\
                 int main(void) {\n\
                 char line[64];\n\
                 if (!fgets(line, sizeof line, stdin)) return 1;\n\
                 printf(\"hello VARIANT %s\", line);\n\
                 return 0;\n\
                 }\n",
        comment: "//",
    },
    Program {
        language: "cpp",
        source: "#include <iostream>\n\
                 #include <string>\n\
                 int main() {\n\
                 std::string line;\n\
                 std::getline(std::cin, line);\n\
                 std::cout << \"hello VARIANT \" << line << \"\\n\";\n\
                 }\n",
        comment: "//",
    },
];

impl Program {
    /// The text of one variant. A unique remark makes it miss the compile cache.
    pub(super) fn text(&self, variant: usize, remark: Option<&str>) -> String {
        let text = self.source.replace("VARIANT", &variant.to_string());
        let remark = remark.map(|remark| format!("{} {remark}\n", self.comment));
        text + &remark.unwrap_or_default()
    }
}

/// What every one of them prints.
pub(super) fn greeting(variant: usize, line: &str) -> String {
    format!("hello {variant} {line}\n")
}
