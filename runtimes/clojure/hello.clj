(println "Hello, World!")
