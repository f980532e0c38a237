main(_Arguments) ->
    io:format("Hello, World!~n").
