%% Compiles the sources, and makes a script of the one to begin with. Arguments: the entry, all sources.
[Entry | Sources] = init:get_plain_arguments(),

%% A script names no module and exports nothing; then it is `main`, and exports all.
Complete = fun(Forms) ->
    Has = fun(Attribute) -> [] =/= [F || F <- Forms, element(1, F) =:= attribute, element(3, F) =:= Attribute] end,
    [File | Rest] = Forms,
    Module = [{attribute, 1, module, main} || not Has(module)],
    Options = [nowarn_export_all | [export_all || not Has(export)]],
    {[File | Module] ++ Rest, Options}
end,

Compile = fun(Source) ->
    {ok, Parsed} = epp:parse_file(Source, [{source_name, Source}]),
    {Forms, Options} = Complete(Parsed),
    case compile:forms(Forms, [report, {source, Source} | Options]) of
        {ok, Module, Code} -> {Module, Code};
        error -> halt(1)
    end
end,

{_, Main} = Compile(Entry),
ok = escript:create("program.escript", [shebang, {beam, Main}]),
lists:foreach(
    fun(Source) ->
        {Module, Code} = Compile(Source),
        ok = file:write_file(atom_to_list(Module) ++ ".beam", Code)
    end,
    Sources -- [Entry]
),
halt(0).
