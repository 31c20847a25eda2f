r"""Every letter of the book, in one table: argument name -> letter and meaning.

The word is what the API uses, the letter is what the mathematics shows.  A formula cannot be defined with
an argument that is missing here, and the notation appendix is this table.
"""
from typing import NamedTuple


class Letter(NamedTuple):
    """How a name is written in mathematics (LaTeX) and what it stands for."""
    latex: str
    meaning: str


NOTATION = {k: Letter(*v) for k, v in dict(
    # the model
    params=(r"\Psi", "parameters of the model"),
    matmul_params=(r"\Psi_{\mathrm{mm}}", "parameters that every token is multiplied by"),
    layers=("L", "transformer layers"),
    hidden=("H", "width of the residual stream"),
    attention_width=(r"H_{\mathrm{a}}", "heads times head dimension"),
    kv_width=(r"H_{\mathrm{kv}}", "key-value heads times head dimension"),
    ffn=(r"H_{\mathrm{f}}", "width of the feed-forward layer"),
    heads=("a", "attention heads"),
    vocab=("V", "tokens in the vocabulary"),
    seq_len=("S", "tokens in a sequence"),
    context=(r"\bar S", "keys that a query attends to, on average"),
    # the job
    tokens=("D", "training tokens"),
    batch_tokens=("B", "tokens in one optimizer step"),
    tokens_per_device=("x", "tokens per device and step"),
    flops=("C", "floating-point operations of the job"),
    duration=("T", "wall-clock time"),
    token_rate=(r"\nu", "tokens per second"),
    # scaling laws: exponents are a with an index, so that alpha and beta keep their meaning
    irreducible=(r"L_\infty", "loss that no size and no data removes, nats per token"),
    size_coefficient=(r"A_\Psi", "coefficient of the size term of the loss"),
    data_coefficient=("A_D", "coefficient of the data term of the loss"),
    size_exponent=(r"a_\Psi", "exponent of the size term of the loss"),
    data_exponent=("a_D", "exponent of the data term of the loss"),
    reducible=(r"L_{+}", "loss above the irreducible part, nats per token"),
    size_ratio=(r"\kappa", "parameters over the best number of parameters for the same compute"),
    batch_exponent=("a_B", "power of 1/loss with which the critical batch grows"),
    step_exponent=("a_S", "exponent of the loss in optimizer steps"),
    # the machine
    peak=("F", "dense peak arithmetic of one device"),
    mfu=(r"\eta", "model FLOP utilization"),
    memory=("M", "memory of one device"),
    bandwidth=("W", "memory bandwidth of one device"),
    nbytes=("Q", "bytes moved"),
    intensity=("I", "FLOP per byte moved"),
    # the network
    n=("n", "bytes in the buffer that one rank holds"),
    P=("P", "ranks"),
    alpha=(r"\alpha", "latency of one message"),
    beta=(r"\beta", "bandwidth, one direction, one device"),
    node_size=("G", "devices in a node"),
    nodes=("N", "nodes"),
    alpha1=(r"\alpha_1", "latency inside a node"),
    beta1=(r"\beta_1", "bandwidth inside a node, one direction, one device"),
    alpha2=(r"\alpha_2", "latency between nodes"),
    beta2=(r"\beta_2", "bandwidth of one device's NIC, one direction"),
    oversubscription=(r"\sigma", "bandwidth below a switch over bandwidth above it"),
    crossing=(r"n_{\times}", "bytes that must cross a cut"),
    cut_bandwidth=(r"W_{\times}", "bandwidth of a cut, one direction"),
    segments=("k", "segments of a message"),
    launch=("T_0", "time of a call before its first message"),
    inside=("a", "ranks on one side of a cut"),
    channels=("c", "rings that share the buffer"),
    slowest=(r"T_{\max}", "time of the slowest stage"),
    others=(r"T_{+}", "time of the other stages together"),
    segment_cost=(r"\alpha_{\mathrm{k}}", "time that each segment adds to the slowest stage"),
    axes=("A", "axes of a torus that a collective uses"),
    side=("q", "ranks along the longest axis of a torus"),
    # rounding
    roundoff=("u", "largest relative error of one rounding"),
    # splitting
    tp=("t", "tensor-parallel ranks"),
    pp=("p", "pipeline stages"),
    dp=("d", "data-parallel ranks"),
    microbatches=("m", "micro-batches per step"),
    element_bytes=(r"b_{\mathrm{e}}", "bytes per element"),
    # matrices
    rows=("r", "rows of the left matrix"),
    inner=("q", "inner dimension"),
    cols=("c", "columns of the right matrix"),
    cache=("Z", "fast memory available to a tile"),
    array=(r"n_{\mathrm{a}}", "side of a systolic array"),
    tile_rows=(r"r_{\mathrm{t}}", "rows of the output tile of one processor"),
    tile_cols=(r"c_{\mathrm{t}}", "columns of the output tile of one processor"),
    processors=(r"n_{\mathrm{p}}", "processors of one device"),
    # model state
    weight=(r"b_{\mathrm{w}}", "bytes of weight per parameter"),
    grad=(r"b_{\mathrm{g}}", "bytes of gradient per parameter"),
    optimizer=(r"b_{\mathrm{o}}", "bytes of optimizer state per parameter, master copy included"),
    weight_ranks=(r"P_{\mathrm{w}}", "ranks that share the weights"),
    grad_ranks=(r"P_{\mathrm{g}}", "ranks that share the gradients"),
    optimizer_ranks=(r"P_{\mathrm{o}}", "ranks that share the optimizer state"),
    bytes_per_param=("b", "bytes of model state per parameter"),
    # activations and recomputation
    microbatch_tokens=("y", "tokens in one micro-batch"),
    seq_ranks=(r"t_{\mathrm{s}}", "ranks that share the sequence outside the matmuls"),
    checkpoint_bytes=(r"A_{\mathrm{c}}", "bytes of one stored layer input"),
    layer_bytes=(r"A_{\ell}", "bytes of one layer's activations"),
    interval_layers=("k", "layers between stored inputs"),
    recompute=(r"r_{\mathrm{c}}", "share of the forward pass that is done twice"),
    # overlap
    forward=(r"T_{\mathrm{f}}", "time of the forward pass"),
    backward=(r"T_{\mathrm{b}}", "time of the backward pass"),
    comm=(r"T_{\mathrm{c}}", "time of the communication, all of it"),
    cover=(r"T_{\mathrm{o}}", "time of the computation that the communication may overlap"),
    buckets=("k", "buckets the gradient is cut into"),
    window=("w", "FLOP per parameter and token that communication may hide behind"),
    # storage and input
    bytes_per_token=(r"b_{\mathrm{t}}", "stored bytes per token"),
    sample_bytes=("s", "bytes of one sample"),
    block_bytes=(r"b_{\mathrm{k}}", "bytes of one storage block"),
    amplification=(r"\rho_{\mathrm{r}}", "bytes read over bytes used"),
    rho=(r"\rho", "rate of the loader over rate of the trainer"),
    slots=("K", "slots of the prefetch buffer"),
    load=(r"T_{\mathrm{l}}", "time to load one batch"),
    step=(r"T_{\mathrm{s}}", "time to train on one batch"),
    compression=("c", "raw bytes over stored bytes"),
    storage_bandwidth=(r"W_{\mathrm{s}}", "bandwidth of storage, stored bytes"),
    decode_rate=(r"R_{\mathrm{d}}", "rate of decompression, raw bytes"),
    # money and failure
    price=("R", "price of one device"),
    peak_mfu=(r"\eta_0", "utilization on few devices"),
    half_devices=("P_0", "devices at which utilization has halved"),
    value_of_time=("v", "value of finishing earlier"),
    failure_rate=(r"\lambda", "failures of the whole job per second"),
    mtbf=(r"\Theta", "mean time between failures of the whole job"),
    interval=(r"\tau", "work between two checkpoints"),
    checkpoint=(r"\delta", "time of one checkpoint that stops the work"),
    restart=("r", "time from a failure to work again"),
    capex=("K", "purchase price of one device with its share of the system"),
    life=(r"T_{\mathrm{life}}", "depreciation time"),
    opex=(r"R_{\mathrm{op}}", "running cost of one device"),
    utilization=("u", "share of the time that the device does paid work"),
    # batch and noise
    batch=("B", "examples, or tokens, in one optimizer step"),
    gradient_variance=("V", "variance of one example's gradient, over all coordinates"),
    gradient_square=("g^2", "squared norm of the true gradient"),
    noise_scale=(r"B_{\mathrm{n}}", "gradient noise scale"),
    critical_batch=(r"B_{\mathrm{c}}", "batch that needs twice the least steps and twice the least examples"),
    least_steps=(r"S_{\min}", "steps to a given loss with endless batches"),
    small_norm=(r"q_{\mathrm{s}}", "mean squared norm of the gradients of small batches"),
    big_norm=(r"q_{\mathrm{b}}", "mean squared norm of the gradients of big batches"),
    small_batch=(r"B_{\mathrm{s}}", "examples in a small batch"),
    big_batch=(r"B_{\mathrm{b}}", "examples in a big batch"),
    copy_tokens=(r"b_{\min}", "tokens per step and copy of the gradient above which its sum hides"),
    # error bars
    spread=(r"\sigma_1", "standard deviation of a logarithm"),
    other_spread=(r"\sigma_2", "standard deviation of another, independent logarithm"),
    deviations=("z", "half-width of an interval, in standard deviations"),
).items()}
