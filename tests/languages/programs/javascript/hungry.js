const kept = [];
for (;;) kept.push(new Array(100000).fill(kept.length));
