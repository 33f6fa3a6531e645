import strongticket


def test_version_is_a_number():
    assert strongticket.__version__[0].isdigit()
