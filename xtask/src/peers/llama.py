"""Writes a tiny model with random weights and serves it with llama.cpp.

Usage: llama.py MODEL PORT. What it says is noise, byte by byte; that it is said
by real inference over llama.cpp's own server is what counts.
"""

import sys
import threading

import gguf
import numpy
from xllamacpp import CommonParams, Server

WIDTH, FEED, LAYERS, HEADS, CONTEXT = 64, 128, 2, 4, 16384
SPECIAL = ["<unk>", "<s>", "</s>"]


def write(path):
    vocabulary = SPECIAL + [f"<0x{byte:02X}>" for byte in range(256)]
    kinds = [gguf.TokenType.UNKNOWN] + [gguf.TokenType.CONTROL] * 2 + [gguf.TokenType.BYTE] * 256
    model = gguf.GGUFWriter(path, "llama")
    model.add_context_length(CONTEXT)
    model.add_embedding_length(WIDTH)
    model.add_block_count(LAYERS)
    model.add_feed_forward_length(FEED)
    model.add_head_count(HEADS)
    model.add_head_count_kv(HEADS)
    model.add_rope_dimension_count(WIDTH // HEADS)
    model.add_layer_norm_rms_eps(1e-5)
    model.add_vocab_size(len(vocabulary))
    model.add_tokenizer_model("llama")
    model.add_token_list(vocabulary)
    model.add_token_scores([0.0] * len(vocabulary))
    model.add_token_types(kinds)
    model.add_unk_token_id(0)
    model.add_bos_token_id(1)
    model.add_eos_token_id(2)
    chance = numpy.random.default_rng(1)

    def tensor(name, *shape):
        model.add_tensor(f"{name}.weight", chance.normal(0, 0.05, shape).astype(numpy.float32))

    tensor("token_embd", len(vocabulary), WIDTH)
    tensor("output", len(vocabulary), WIDTH)
    tensor("output_norm", WIDTH)
    for layer in range(LAYERS):
        for name in ["attn_norm", "ffn_norm"]:
            tensor(f"blk.{layer}.{name}", WIDTH)
        for name in ["attn_q", "attn_k", "attn_v", "attn_output"]:
            tensor(f"blk.{layer}.{name}", WIDTH, WIDTH)
        tensor(f"blk.{layer}.ffn_gate", FEED, WIDTH)
        tensor(f"blk.{layer}.ffn_up", FEED, WIDTH)
        tensor(f"blk.{layer}.ffn_down", WIDTH, FEED)
    model.write_header_to_file()
    model.write_kv_data_to_file()
    model.write_tensors_to_file()
    model.close()


def serve(path, port):
    params = CommonParams()
    params.model.path = path
    params.hostnames = ["127.0.0.1"]
    params.port = port
    params.n_ctx = CONTEXT
    params.n_parallel = 1
    params.use_jinja = True
    params.endpoint_metrics = True
    params.warmup = False
    # Noise would end at a random place.
    params.sampling.ignore_eos = True
    server = Server(params)
    threading.Event().wait()
    del server


if __name__ == "__main__":
    write(sys.argv[1])
    serve(sys.argv[1], int(sys.argv[2]))
