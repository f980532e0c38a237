"""What the TypeScript compiler leaves in .program, and its sources beside it."""
from case import Case

MAP = ("//# sourceMappingURL=data:application/json;base64,"
       "eyJ2ZXJzaW9uIjozLCJzb3VyY2VzIjpbIm1haW4udHMiXSwibmFtZXMiOltdLCJtYXBwaW5ncyI6IkFBR0EifQ==\n")

CASES = [
    Case("hello", "", others={".program/main.js": "console.log('Hello, World!');\n"}),
    Case("where it is", "", args=("a", "b"), others={
        ".program/main.js": "console.log(__filename, process.argv, process.execArgv, process.cwd());\n"}),
    Case("environment", "", environment={"MINE": "1"}, others={
        ".program/main.js": "console.log(Object.entries(process.env).sort());\n"}),
    Case("error with a source map", "\n\n\nfail\n", others={".program/main.js": "throw new Error('no');\n" + MAP}),
    Case("modules in directories", "", entry="src/main.ts", others={
        "lib/data.txt": "data", ".program/lib/a.js": "exports.a = require('fs').readFileSync(__dirname + '/data.txt', 'utf8');\n",
        ".program/src/main.js": "console.log(require('../lib/a').a, require.main === module);\n"}),
    Case("ES module", "", entry="main.mts", others={".program/main.mjs": "console.log(import.meta.url, await 1);\n"}),
    Case("CommonJS module", "", entry="main.cts", others={".program/main.cjs": "console.log(__filename);\n"}),
    Case("nothing compiled", ""),
    Case("file that is there already", "", others={"main.js": "old", ".program/main.js": "console.log('new');\n"}),
]
